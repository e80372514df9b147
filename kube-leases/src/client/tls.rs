//! What our TLS takes that ring does not, and kubectl's does.
//!
//! * Keys on the curve P-521, of clients and of servers and their authorities.
//! * Client certificates of X.509 version 1: rustls wants to compare a client certificate's public key with
//!   the private one, and does not read that version. A kube-apiserver does; so whether they belong together
//!   is looked at here, where it can be.

use std::{
    error, io,
    sync::{Arc, Once},
};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use kube::config::AuthInfo;
use p521::{
    SecretKey,
    ecdsa::{
        DerSignature, SigningKey as P521Key, VerifyingKey,
        signature::{Signer as _, Verifier as _},
    },
    pkcs8::DecodePrivateKey as _,
};
use rustls::{
    CertificateError, OtherError, SignatureAlgorithm, SignatureScheme,
    crypto::{CryptoProvider, KeyProvider, WebPkiSupportedAlgorithms, ring},
    pki_types::{
        AlgorithmIdentifier, CertificateDer, InvalidSignature, PrivateKeyDer, SignatureVerificationAlgorithm,
        alg_id, pem::PemObject as _,
    },
    server::ParsedCertificate,
    sign::{Signer, SigningKey},
};
use secrecy::ExposeSecret as _;

use crate::error::{BadCertificate, Error, Result};

/// Makes all connections of this process take what is said above.
pub(super) fn prepare() {
    static ONCE: Once = Once::new();
    // A program that uses this library may have installed another provider before.
    ONCE.call_once(|| drop(provider().install_default()));
}

/// The error of TLS among the causes of another.
pub(super) fn error_in<'a>(error: &'a (dyn error::Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The source of an `io::Error` is that of what it wraps.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

/// What is wrong with the certificate of a server, if that is the error.
pub(super) fn bad_certificate(error: &rustls::Error) -> Option<BadCertificate> {
    match error {
        // webpki's own error, whose type is not ours to name.
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other)))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            Some(BadCertificate::Authority)
        }
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            Some(BadCertificate::Invalid)
        }
        _ => None,
    }
}

fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.key_provider = &Keys;
    let known = provider.signature_verification_algorithms;
    provider.signature_verification_algorithms = WebPkiSupportedAlgorithms {
        all: Box::leak([known.all, &P521].concat().into_boxed_slice()),
        mapping: Box::leak(
            [known.mapping, &[(SignatureScheme::ECDSA_NISTP521_SHA512, &P521)]].concat().into_boxed_slice(),
        ),
    };
    provider
}

/// Whether the client certificate of a user, if there is one, goes with its key.
pub(super) fn check(user: &AuthInfo) -> Result<()> {
    let text = |data: &str| BASE64_STANDARD.decode(data.trim()).unwrap_or_default();
    let (Some(certificate), Some(key)) = (&user.client_certificate_data, &user.client_key_data) else {
        return Ok(());
    };
    match wrong_pair(&text(certificate), &text(key.expose_secret())) {
        None => Ok(()),
        Some(why) => {
            Err(Error::Configuration { message: format!("the client certificate cannot be used: {why}") })
        }
    }
}

/// Why a client certificate and its key, both in PEM, cannot be used; `None` where nothing speaks against it.
fn wrong_pair(certificate: &[u8], key: &[u8]) -> Option<&'static str> {
    let Ok(certificate) = CertificateDer::from_pem_slice(certificate) else {
        return Some("there is no certificate in it");
    };
    let Ok(key) = PrivateKeyDer::from_pem_slice(key) else {
        return Some("there is no private key in it: it has to be in PEM, and not encrypted");
    };
    let Ok(key) = load(key) else {
        return Some(
            "its private key is of no kind that is supported: RSA of 2048 bits or more, ECDSA on P-256, P-384 or \
             P-521, or Ed25519",
        );
    };
    // That it cannot be read is no reason: the server may.
    let parsed = ParsedCertificate::try_from(&certificate).ok()?;
    let differs = key.public_key().is_some_and(|public| public != parsed.subject_public_key_info());
    differs.then_some("its private key is not the one of the certificate")
}

fn load(key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, rustls::Error> {
    let other = match &key {
        PrivateKeyDer::Sec1(key) => SecretKey::from_sec1_der(key.secret_sec1_der()).ok(),
        PrivateKeyDer::Pkcs8(key) => SecretKey::from_pkcs8_der(key.secret_pkcs8_der()).ok(),
        _ => None,
    };
    match other {
        Some(key) => Ok(Arc::new(OnP521(Arc::new(key.into())))),
        None => ring::default_provider().key_provider.load_private_key(key),
    }
}

#[derive(Debug)]
struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, rustls::Error> {
        Ok(Arc::new(Uncompared(load(key)?)))
    }
}

/// A key that does not say what its public one is, and therefore is not compared with a certificate.
#[derive(Debug)]
struct Uncompared(Arc<dyn SigningKey>);

impl SigningKey for Uncompared {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        self.0.choose_scheme(offered)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[derive(Clone)]
struct OnP521(Arc<P521Key>);

impl std::fmt::Debug for OnP521 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnP521")
    }
}

impl SigningKey for OnP521 {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&self.scheme()).then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn public_key(&self) -> Option<rustls::pki_types::SubjectPublicKeyInfoDer<'_>> {
        let point = self.0.verifying_key().to_sec1_point(false);
        Some(rustls::sign::public_key_to_spki(&alg_id::ECDSA_P521, point.as_bytes()))
    }
}

impl Signer for OnP521 {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let signature: Result<DerSignature, _> = self.0.try_sign(message);
        signature
            .map(|signature| signature.as_bytes().to_vec())
            .map_err(|_| rustls::Error::General("the client key cannot sign".into()))
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP521_SHA512
    }
}

static P521: [&dyn SignatureVerificationAlgorithm; 1] = [&EcdsaP521];

/// ECDSA on P-521 with SHA-512.
#[derive(Debug)]
struct EcdsaP521;

impl SignatureVerificationAlgorithm for EcdsaP521 {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let key = VerifyingKey::from_sec1_bytes(public_key).map_err(|_| InvalidSignature)?;
        let signature = DerSignature::from_bytes(signature).map_err(|_| InvalidSignature)?;
        key.verify(message, &signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_SHA512
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_on_p521_is_of_its_key_and_message() {
        let key = |last: u8| {
            let mut scalar = [1; 66];
            scalar[65] = last;
            OnP521(Arc::new(SecretKey::from_slice(&scalar).unwrap().into()))
        };
        let (one, other) = (key(1), key(2));
        let public = |key: &OnP521| key.0.verifying_key().to_sec1_point(false).as_bytes().to_vec();
        let signature = one.choose_scheme(&[one.scheme()]).unwrap().sign(b"message").unwrap();
        assert!(EcdsaP521.verify_signature(&public(&one), b"message", &signature).is_ok());
        assert!(EcdsaP521.verify_signature(&public(&one), b"another", &signature).is_err());
        assert!(EcdsaP521.verify_signature(&public(&other), b"message", &signature).is_err());
        assert!(EcdsaP521.verify_signature(b"", b"message", &signature).is_err());
        assert!(one.choose_scheme(&[SignatureScheme::ED25519]).is_none());
    }

    /// As hyper and tokio-rustls wrap it.
    #[derive(Debug, thiserror::Error)]
    #[error("connecting")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn what_is_wrong_with_a_certificate_is_found_below_what_wraps_it() {
        let other = |text: &str| OtherError(Arc::new(io::Error::other(text.to_owned())));
        let invalid = rustls::Error::InvalidCertificate;
        for (error, found) in [
            (invalid(CertificateError::UnknownIssuer), Some(BadCertificate::Invalid)),
            (invalid(CertificateError::Expired), Some(BadCertificate::Invalid)),
            (
                invalid(CertificateError::Other(other("PathLenConstraintViolated"))),
                Some(BadCertificate::Invalid),
            ),
            (invalid(CertificateError::Other(other("CaUsedAsEndEntity"))), Some(BadCertificate::Authority)),
            (rustls::Error::NoCertificatesPresented, Some(BadCertificate::Invalid)),
            (rustls::Error::HandshakeNotComplete, None),
            (rustls::Error::General("a certificate".into()), None),
        ] {
            let twice = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
            let wrapped = Wrapped(twice);
            let inner = io::Error::other(wrapped);
            assert_eq!(error_in(&inner).and_then(bad_certificate), found, "{inner:?}");
        }
        assert!(error_in(&Wrapped(io::Error::other("certificate"))).is_none());
    }

    #[test]
    fn servers_may_have_keys_on_p521_too() {
        let provider = provider();
        let known = ring::default_provider().signature_verification_algorithms;
        let ours = provider.signature_verification_algorithms;
        assert_eq!(ours.all.len(), known.all.len() + 1);
        assert!(ours.supported_schemes().contains(&SignatureScheme::ECDSA_NISTP521_SHA512));
    }

    #[test]
    fn a_certificate_and_a_key_that_do_not_belong_together_are_told() {
        let pair = || {
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
            (certificate.pem(), key.serialize_pem())
        };
        let ((certificate, key), (_, other)) = (pair(), pair());
        let small = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
        for (certificate, key, wrong) in [
            (certificate.as_str(), key.as_str(), None),
            (&certificate, &other, Some("not the one of the certificate")),
            (&certificate, &certificate, Some("no private key")),
            (&certificate, small, Some("of no kind that is supported")),
            (&key, &key, Some("no certificate")),
            ("", "", Some("no certificate")),
        ] {
            let found = wrong_pair(certificate.as_bytes(), key.as_bytes());
            assert_eq!(found.is_some(), wrong.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(wrong.unwrap_or_default()), "{found:?}");
        }
    }
}
