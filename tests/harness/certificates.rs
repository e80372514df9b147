//! The certificates and keys of one control plane.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

pub struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a certificate authority and the key that signs service account tokens.
    pub fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "sandbox");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.join("ca.crt"), issuer.pem()).unwrap();

        let accounts = KeyPair::generate().unwrap();
        fs::write(folder.join("service-account.key"), accounts.serialize_pem()).unwrap();
        fs::write(folder.join("service-account.pub"), accounts.public_key_pem()).unwrap();
        Self { folder: folder.to_owned(), issuer }
    }

    /// Writes `<file>.crt` and `<file>.key` for a user in groups, or for a server on loopback.
    pub fn issue(&self, file: &str, user: &str, groups: &[&str], server: bool) {
        let names = if server { vec!["localhost".to_owned(), "127.0.0.1".to_owned()] } else { Vec::new() };
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![if server {
            ExtendedKeyUsagePurpose::ServerAuth
        } else {
            ExtendedKeyUsagePurpose::ClientAuth
        }];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.folder.join(format!("{file}.crt")), certificate.pem()).unwrap();
        fs::write(self.folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}
